// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {PoolKey, SwapParams} from "../../../contracts/interfaces/IPoolManager.sol";
import {IUniswapV4Router} from "../../../contracts/interfaces/IUniswapV4Router.sol";
import {IMintableToken} from "../support/Interfaces.sol";
import {Deployer} from "../support/Deployer.sol";

interface IUnlockCallback {
    function unlockCallback(bytes calldata data) external returns (bytes memory);
}

/// @notice Stands in for the manager, with its accounting and any price; TypeScript tests trade with the published one. What a swap changes is owed or due until
/// the end of `unlock`, which reverts unless all is paid.
contract StandInManager {
    error AlreadyUnlocked();
    error CurrencyNotSettled();

    bool private unlocked;
    address private synced;
    uint256 private syncedBalance;
    mapping(address account => mapping(address token => int256 amount)) private deltas;
    uint256 private open;
    /// What the next swap takes, and gives; zero gives as much as was asked for.
    uint256 private nextIn;
    uint256 private nextOut;
    SwapParams public last;
    mapping(bytes32 slot => bytes32 value) public extsload;

    function put(bytes32 slot, bytes32 value) external {
        extsload[slot] = value;
    }

    function set(uint256 amountIn, uint256 amountOut) external {
        (nextIn, nextOut) = (amountIn, amountOut);
    }

    function unlock(bytes calldata data) external returns (bytes memory answer) {
        if (unlocked) revert AlreadyUnlocked();
        unlocked = true;
        answer = IUnlockCallback(msg.sender).unlockCallback(data);
        if (open != 0) revert CurrencyNotSettled();
        unlocked = false;
    }

    function swap(PoolKey calldata key, SwapParams calldata params, bytes calldata) external returns (int256) {
        last = params;
        (address paid, address received) = params.zeroForOne
            ? (key.currency0, key.currency1)
            : (key.currency1, key.currency0);
        _change(paid, -int256(nextIn));
        _change(received, int256(nextOut));
        (int256 change0, int256 change1) = params.zeroForOne
            ? (-int256(nextIn), int256(nextOut))
            : (int256(nextOut), -int256(nextIn));
        return (change0 << 128) | int256(uint256(uint128(int128(change1))));
    }

    function sync(address currency) external {
        (synced, syncedBalance) = (currency, IMintableToken(currency).balanceOf(address(this)));
    }

    function settle() external payable returns (uint256 paid) {
        paid = IMintableToken(synced).balanceOf(address(this)) - syncedBalance;
        _change(synced, int256(paid));
    }

    function take(address currency, address to, uint256 amount) external {
        _change(currency, -int256(amount));
        IMintableToken(currency).transfer(to, amount);
    }

    function _change(address token, int256 by) private {
        int256 before = deltas[msg.sender][token];
        int256 present = before + by;
        deltas[msg.sender][token] = present;
        if (before == 0 && present != 0) ++open;
        if (before != 0 && present == 0) --open;
    }
}

/// @notice Keeps a thousandth of each transfer, or calls back into the router first.
contract OddToken {
    mapping(address account => uint256 amount) public balanceOf;
    bool public keeps;
    address public target;
    bytes public data;
    bool public reentered;

    function mint(address to, uint256 amount) external {
        balanceOf[to] += amount;
    }

    function set(bool keeps_, address target_, bytes calldata data_) external {
        (keeps, target, data) = (keeps_, target_, data_);
    }

    function transfer(address to, uint256 amount) external returns (bool) {
        return transferFrom(msg.sender, to, amount);
    }

    function transferFrom(address from, address to, uint256 amount) public returns (bool) {
        if (target != address(0)) (reentered, ) = target.call(data);
        balanceOf[from] -= amount;
        balanceOf[to] += keeps ? amount - amount / 1000 : amount;
        return true;
    }
}

/// @notice The router takes from its caller and pays its caller, in whole or not at all, whatever the pool trades.
contract UniswapV4RouterTest is Deployer {
    address private constant TRADER = address(0x7AADE4);
    address private constant OTHER = address(0x07AE4);
    uint256 private constant MOST = uint128(type(int128).max);

    StandInManager private manager;
    IUniswapV4Router private router;
    IMintableToken private token0;
    IMintableToken private token1;

    function setUp() external {
        manager = new StandInManager();
        router = IUniswapV4Router(deploy("UniswapV4Router.sol:UniswapV4Router", abi.encode(address(manager))));
        address a = deploy("MintableToken.sol:MintableToken", abi.encode("A", "A", 18));
        address b = deploy("MintableToken.sol:MintableToken", abi.encode("B", "B", 18));
        (token0, token1) = a < b ? (IMintableToken(a), IMintableToken(b)) : (IMintableToken(b), IMintableToken(a));
        for (uint256 i = 0; i < 2; ++i) {
            IMintableToken token = i == 0 ? token0 : token1;
            token.mint(address(manager), type(uint128).max);
            token.mint(TRADER, type(uint128).max);
            token.mint(OTHER, type(uint128).max);
            vm.prank(TRADER);
            token.approve(address(router), type(uint256).max);
            vm.prank(OTHER);
            token.approve(address(router), type(uint256).max);
        }
    }

    function testFuzz_SellsExactlyTheAmount(
        uint256 amountIn,
        uint256 amountOut,
        uint256 minimum,
        bool zeroForOne
    ) external {
        amountIn = bound(amountIn, 1, MOST);
        amountOut = bound(amountOut, 0, MOST);
        manager.set(amountIn, amountOut);
        assertEq(router.quoteExactIn(_key(), zeroForOne, amountIn), amountOut, "quote");
        assertEq(_bought(zeroForOne, OTHER), 0, "a quote moves nothing");
        bool enough = minimum <= amountOut;
        if (!enough) {
            vm.expectRevert(abi.encodeWithSelector(IUniswapV4Router.InsufficientOutput.selector, amountOut, minimum));
        }
        vm.prank(TRADER);
        uint256 out = router.swapExactIn(_key(), zeroForOne, amountIn, minimum);
        if (!enough) return;
        assertEq(out, amountOut, "output");
        _assertTraded(zeroForOne, amountIn, amountOut);
        (, int256 specified, ) = manager.last();
        assertTrue(specified == -int256(amountIn), "exact input");
    }

    function testFuzz_BuysExactlyTheAmount(
        uint256 amountIn,
        uint256 amountOut,
        uint256 maximum,
        bool zeroForOne
    ) external {
        amountIn = bound(amountIn, 0, MOST);
        amountOut = bound(amountOut, 1, MOST);
        manager.set(amountIn, amountOut);
        assertEq(router.quoteExactOut(_key(), zeroForOne, amountOut), amountIn, "quote");
        bool enough = amountIn <= maximum;
        if (!enough) {
            vm.expectRevert(abi.encodeWithSelector(IUniswapV4Router.ExcessiveInput.selector, amountIn, maximum));
        }
        vm.prank(TRADER);
        uint256 cost = router.swapExactOut(_key(), zeroForOne, amountOut, maximum);
        if (!enough) return;
        assertEq(cost, amountIn, "input");
        _assertTraded(zeroForOne, amountIn, amountOut);
        (, int256 specified, ) = manager.last();
        assertTrue(specified == int256(amountOut), "exact output");
    }

    function testFuzz_RefusesAPartOfTheAmount(
        uint256 amount,
        uint256 available,
        bool exactIn,
        bool zeroForOne
    ) external {
        amount = bound(amount, 1, MOST);
        available = bound(available, 0, amount - 1);
        manager.set(exactIn ? available : 0, exactIn ? 0 : available);
        bytes memory reason = abi.encodeWithSelector(IUniswapV4Router.PartialSwap.selector, available, amount);
        vm.expectRevert(reason);
        vm.prank(TRADER);
        if (exactIn) router.swapExactIn(_key(), zeroForOne, amount, 0);
        else router.swapExactOut(_key(), zeroForOne, amount, type(uint256).max);
        vm.expectRevert(reason);
        if (exactIn) router.quoteExactIn(_key(), zeroForOne, amount);
        else router.quoteExactOut(_key(), zeroForOne, amount);
    }

    function testFuzz_RefusesAmountsThatTheManagerDoesNotCount(uint256 amount, bool exactIn) external {
        amount = bound(amount, MOST + 1, type(uint256).max);
        for (uint256 i = 0; i < 2; ++i) {
            bytes memory reason = abi.encodeWithSelector(IUniswapV4Router.AmountOutOfRange.selector, amount);
            vm.expectRevert(reason);
            if (exactIn) router.swapExactIn(_key(), true, amount, 0);
            else router.swapExactOut(_key(), true, amount, type(uint256).max);
            vm.expectRevert(reason);
            if (exactIn) router.quoteExactIn(_key(), true, amount);
            else router.quoteExactOut(_key(), true, amount);
            amount = 0;
        }
    }

    function testFuzz_RefusesPoolsWithHooksAndOfEther(address hooks, bool isEther, bool exactIn) external {
        vm.assume(hooks != address(0) || isEther);
        PoolKey memory key = _key();
        key.hooks = hooks;
        if (isEther) key.currency0 = address(0);
        bytes memory reason = abi.encodeWithSelector(
            IUniswapV4Router.UnsupportedPool.selector,
            key.currency0,
            key.hooks
        );
        vm.expectRevert(reason);
        if (exactIn) router.swapExactIn(key, true, 1, 0);
        else router.swapExactOut(key, true, 1, 1);
        vm.expectRevert(reason);
        if (exactIn) router.quoteExactIn(key, true, 1);
        else router.quoteExactOut(key, true, 1);
    }

    function testFuzz_SaysThePriceAlone(PoolKey calldata key, bytes32 word) external {
        assertEq(router.sqrtPriceOf(key), 0, "no pool");
        manager.put(keccak256(abi.encode(keccak256(abi.encode(key)), 6)), word);
        assertEq(router.sqrtPriceOf(key), uint160(uint256(word)), "price");
    }

    function testFuzz_OnlyTheManagerCallsBack(address caller, bytes calldata data) external {
        vm.assume(caller != address(manager));
        vm.expectRevert(abi.encodeWithSelector(IUniswapV4Router.NotPoolManager.selector, caller));
        vm.prank(caller);
        router.unlockCallback(data);
    }

    function test_ATokenThatKeepsAPartIsNotTraded() external {
        OddToken odd = new OddToken();
        odd.set(true, address(0), "");
        odd.mint(TRADER, 1e18);
        PoolKey memory key = _oddKey(odd);
        manager.set(1e18, 1e18);
        vm.expectRevert(StandInManager.CurrencyNotSettled.selector);
        vm.prank(TRADER);
        router.swapExactIn(key, key.currency0 == address(odd), 1e18, 0);
    }

    /// A token of the pool that calls the router, or makes itself called back, during the payment of one trader can't spend what others allowed.
    function test_ATokenThatCallsBackSpendsNobodysAllowance() external {
        OddToken odd = new OddToken();
        odd.mint(TRADER, 1e18);
        manager.set(1e18, 1e18);
        PoolKey memory key = _oddKey(odd);
        bytes[3] memory calls = [
            abi.encodeCall(IUniswapV4Router.swapExactIn, (_key(), true, 1e18, 0)),
            abi.encodeCall(IUniswapV4Router.quoteExactIn, (_key(), true, 1e18)),
            abi.encodeCall(IUniswapV4Router.unlockCallback, (abi.encode(_key(), true, false, OTHER, -int256(1e18), 0)))
        ];
        for (uint256 i = 0; i < calls.length; ++i) {
            uint256 state = vm.snapshotState();
            odd.set(false, address(router), calls[i]);
            vm.prank(TRADER);
            router.swapExactIn(key, key.currency0 == address(odd), 1e18, 0);
            assertTrue(!odd.reentered(), "the call failed");
            assertEq(token0.balanceOf(OTHER), type(uint128).max, "token 0 of the other");
            assertEq(token1.balanceOf(OTHER), type(uint128).max, "token 1 of the other");
            assertTrue(vm.revertToState(state), "back");
        }
    }

    function _key() private view returns (PoolKey memory) {
        return PoolKey(address(token0), address(token1), 500, 10, address(0));
    }

    function _oddKey(OddToken odd) private view returns (PoolKey memory) {
        (address a, address b) = (address(odd), address(token1));
        return a < b ? PoolKey(a, b, 500, 10, address(0)) : PoolKey(b, a, 500, 10, address(0));
    }

    function _bought(bool zeroForOne, address account) private view returns (uint256) {
        return (zeroForOne ? token1 : token0).balanceOf(account) - type(uint128).max;
    }

    function _assertTraded(bool zeroForOne, uint256 amountIn, uint256 amountOut) private view {
        (IMintableToken paid, IMintableToken received) = zeroForOne ? (token0, token1) : (token1, token0);
        assertEq(paid.balanceOf(TRADER), type(uint128).max - amountIn, "paid");
        assertEq(received.balanceOf(TRADER), uint256(type(uint128).max) + amountOut, "received");
        assertEq(paid.balanceOf(OTHER), type(uint128).max, "not the other's");
        assertEq(paid.balanceOf(address(router)), 0, "nothing stays");
        assertEq(received.balanceOf(address(router)), 0, "nothing stays");
        assertEq(paid.allowance(address(router), address(manager)), 0, "nothing is allowed");
        (bool direction, , uint160 limit) = manager.last();
        assertTrue(direction == zeroForOne, "direction");
        assertEq(
            limit,
            zeroForOne ? 4295128740 : 1461446703485210103287273052203988822378723970341,
            "the last price that there is"
        );
    }
}
