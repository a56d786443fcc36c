// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {IEntrypoint} from "../../../contracts/interfaces/IEntrypoint.sol";
import {ICustodian} from "../../../contracts/interfaces/ICustodian.sol";
import {
    ChargingHookToken,
    FeeOnTransferToken,
    Hooked,
    HookToken,
    LyingToken,
    SilentToken,
    VaultHookToken
} from "../support/HostileTokens.sol";
import {Platform} from "../support/Platform.sol";

/// @notice Runs a list of calls from inside its token's hook, each at most once.
contract Attacker is Hooked {
    address[] private _targets;
    bytes[] private _calls;
    bool private _onReceive;
    bytes public lastError;
    uint256 public failures;

    constructor(HookToken hook, address[] memory spenders, address[] memory tokens) {
        hook.setHook(true);
        for (uint256 i = 0; i < spenders.length; ++i) {
            for (uint256 k = 0; k < tokens.length; ++k) {
                IERC20(tokens[k]).approve(spenders[i], type(uint256).max);
            }
        }
    }

    function plan(address target, bytes calldata data, bool onReceive) external {
        _targets.push(target);
        _calls.push(data);
        _onReceive = onReceive;
    }

    function run(address target, bytes calldata data) external {
        (bool ok, bytes memory result) = target.call(data);
        if (!ok) {
            assembly ("memory-safe") {
                revert(add(result, 32), mload(result))
            }
        }
    }

    function beforeSend(address, uint256) external {
        if (!_onReceive) _next();
    }

    function afterReceive(address, uint256) external {
        if (_onReceive) _next();
    }

    function _next() private {
        if (_calls.length == 0) return;
        (address target, bytes memory data) = (_targets[_targets.length - 1], _calls[_calls.length - 1]);
        _targets.pop();
        _calls.pop();
        (bool ok, bytes memory result) = target.call(data);
        if (ok) return;
        ++failures;
        lastError = result;
    }
}

/// @notice A market whose quote token calls its holders, and tokens that lie, charge or keep silent.
contract ReentrancyTest is Platform {
    HookToken private _hook;
    Attacker private _attacker;
    bytes32 private _hookMarket;

    function setUp() public override {
        super.setUp();
        _hook = new HookToken();
        _hookMarket = _listAgainstBase(address(_hook));
        _hook.mint(MAKER, 10 ** 30);
        vm.startPrank(MAKER);
        _hook.approve(address(custodian), 10 ** 30);
        custodian.deposit(address(_hook), 10 ** 30);
        vm.stopPrank();
        address[] memory spenders = new address[](2);
        (spenders[0], spenders[1]) = (address(custodian), address(entrypoint));
        address[] memory tokens = new address[](2);
        (tokens[0], tokens[1]) = (address(_hook), address(base));
        _attacker = new Attacker(_hook, spenders, tokens);
        _hook.mint(address(_attacker), 10_000e6);
        base.mint(address(_attacker), 10e18);
    }

    /// @dev The attack that the shared lock is for: pay a swap inside a deposit, and have the payment deposited as well.
    function test_SwapInsideADepositIsRefused() external {
        _attacker.plan(address(entrypoint), _buy(3000e6), false);
        _expectDeposit(address(_attacker), 1000e6);
        _attacker.run(address(custodian), _depositCall(1000e6));
        _expectFailure();
        assertEq(_hook.balanceOf(address(custodian)), 10 ** 30 + 1000e6, "one payment, one credit");
        assertEq(base.balanceOf(address(_attacker)), 10e18, "nothing bought");
    }

    function test_DepositInsideADepositIsRefused() external {
        _attacker.plan(address(custodian), _depositCall(500e6), false);
        _expectDeposit(address(_attacker), 1000e6);
        _attacker.run(address(custodian), _depositCall(1000e6));
        _expectFailure();
        assertEq(_hook.balanceOf(address(custodian)), 10 ** 30 + 1000e6, "vault");
    }

    function test_SettlementAndExecutionInsideADepositAreRefused() external {
        vm.startPrank(OWNER);
        custodian.setPoster(address(_attacker), true);
        custodian.setWithdrawDelay(0);
        vm.stopPrank();
        vm.prank(CLAIM_POSTER);
        custodian.settleWithdraw(address(_attacker), address(_hook), 100e6, 0);
        bytes[3] memory calls = [
            abi.encodeCall(ICustodian.executeWithdraw, (address(_hook))),
            abi.encodeCall(ICustodian.settleWithdraw, (address(_attacker), address(_hook), 0, 1)),
            abi.encodeCall(ICustodian.settleWithdrawBatch, (new ICustodian.Settlement[](0)))
        ];
        for (uint256 i = 0; i < calls.length; ++i) {
            _attacker.plan(address(custodian), calls[i], false);
            _expectDeposit(address(_attacker), 1000e6);
            _attacker.run(address(custodian), _depositCall(1000e6));
            assertEq(_attacker.failures(), i + 1, "refused");
        }
        assertEq(custodian.totalClaims(address(_hook)), 100e6, "claim");
    }

    function test_ExecutionInsideItsOwnPaymentIsRefused() external {
        vm.prank(OWNER);
        custodian.setWithdrawDelay(0);
        vm.prank(CLAIM_POSTER);
        custodian.settleWithdraw(address(_attacker), address(_hook), 100e6, 0);
        bytes memory execute = abi.encodeCall(ICustodian.executeWithdraw, (address(_hook)));
        _attacker.plan(address(custodian), execute, true);
        _attacker.run(address(custodian), execute);
        _expectFailure();
        assertEq(_hook.balanceOf(address(_attacker)), 10_100e6, "paid once");
    }

    function test_SwapInsideASwapIsRefused() external {
        _attacker.plan(address(entrypoint), _buy(300e6), false);
        _attacker.run(address(entrypoint), _buy(3000e6));
        _expectFailure();
        assertEq(_hook.balanceOf(address(custodian)), 10 ** 30 + 3000e6, "one payment");
        assertEq(book.marketState(_hookMarket).fillSeq, 1, "one fill");
    }

    function test_SwapAndDepositInsideAPaymentAreRefused() external {
        bytes memory sell = _sell(1e18);
        _attacker.plan(address(entrypoint), sell, true);
        _attacker.run(address(entrypoint), sell);
        _expectFailure();
        _attacker.plan(address(custodian), _depositCall(5e6), true);
        _attacker.run(address(entrypoint), sell);
        assertEq(_attacker.failures(), 2, "refused");
        assertEq(book.marketState(_hookMarket).fillSeq, 2, "two fills");
    }

    /// @dev What a deposit brings in the middle of a payment would be counted as a part of that payment as well.
    function test_DepositInsideASwapIsRefused() external {
        _attacker.plan(address(custodian), _depositCall(500e6), false);
        _attacker.run(address(entrypoint), _buy(3000e6));
        _expectFailureOf(ICustodian.SwapUnderWay.selector);
        assertEq(_hook.balanceOf(address(custodian)), 10 ** 30 + 3000e6, "only the payment");
    }

    /// @dev What is about to leave must not back a claim. The hook stands for a poster's contract: a payment of the pledged token runs a
    /// settlement, before it leaves the vault or after.
    function test_SettlementsInsideASwapAreRefused() external {
        vm.startPrank(OWNER);
        custodian.setPoster(address(_attacker), true);
        custodian.setWithdrawDelay(0);
        vm.stopPrank();
        ICustodian.Settlement[] memory batch = new ICustodian.Settlement[](1);
        batch[0] = ICustodian.Settlement(address(_attacker), address(_hook), 100e6, 0);
        bytes[2] memory calls = [
            abi.encodeCall(ICustodian.settleWithdraw, (address(_attacker), address(_hook), 100e6, 0)),
            abi.encodeCall(ICustodian.settleWithdrawBatch, (batch))
        ];
        for (uint256 i = 0; i < calls.length; ++i) {
            _attacker.plan(address(custodian), calls[i], true);
            _attacker.run(address(entrypoint), _sell(1e18));
            _attacker.plan(address(custodian), calls[i], false);
            _attacker.run(address(entrypoint), _buy(300e6));
            assertEq(_attacker.failures(), 2 * i + 2, "refused");
            bytes memory refusal = abi.encodeWithSelector(ICustodian.SwapUnderWay.selector);
            assertEq(keccak256(_attacker.lastError()), keccak256(refusal), "by the entrypoint's lock");
        }
        assertEq(custodian.totalClaims(address(_hook)), 0, "no claim");
    }

    /// @dev The token asks the vault itself before it lets the payment go, when everything free but it would do for a claim.
    function test_NoClaimIsRaisedOnWhatIsAboutToLeave() external {
        VaultHookToken token = new VaultHookToken(address(custodian));
        bytes32 id = _listAgainstBase(address(token));
        token.mint(MAKER, 5000e6);
        vm.startPrank(MAKER);
        token.approve(address(custodian), 5000e6);
        custodian.deposit(address(token), 5000e6);
        vm.stopPrank();
        vm.prank(OWNER);
        custodian.setPoster(address(token), true);
        token.plan(abi.encodeCall(ICustodian.settleWithdraw, (MAKER, address(token), 5000e6, 0)));
        vm.prank(address(_attacker));
        uint256 out = entrypoint.swap(address(base), address(token), 1e18, 0, TAKER, START);
        bytes memory refusal = abi.encodeWithSelector(ICustodian.SwapUnderWay.selector);
        assertEq(keccak256(token.lastError()), keccak256(refusal), "by the entrypoint's lock");
        assertEq(custodian.totalClaims(address(token)), 0, "no claim");
        assertEq(token.balanceOf(address(custodian)), 5000e6 - out, "paid once");
        assertEq(book.marketState(id).fillSeq, 1, "one fill");
    }

    /// @dev A claim that is executed inside a payment falls by what it takes out of the vault: the others stay covered.
    function test_ExecutionInsideAPaymentLeavesOtherClaimsCovered() external {
        vm.prank(OWNER);
        custodian.setWithdrawDelay(0);
        vm.startPrank(CLAIM_POSTER);
        custodian.settleWithdraw(address(_attacker), address(_hook), 100e6, 0);
        uint256 free = custodian.availableLiquidity(address(_hook));
        custodian.settleWithdraw(MAKER, address(_hook), free - 3500e6, 0);
        vm.stopPrank();
        _attacker.plan(address(custodian), abi.encodeCall(ICustodian.executeWithdraw, (address(_hook))), true);
        uint256 held = _hook.balanceOf(address(_attacker));
        uint256 quoted = entrypoint.quote(address(base), address(_hook), 1e18);
        _attacker.run(address(entrypoint), _sell(1e18));
        assertEq(_attacker.failures(), 0, "both done");
        assertEq(_hook.balanceOf(address(_attacker)), held + quoted + 100e6, "each paid once");
        assertEq(custodian.availableLiquidity(address(_hook)), 3500e6 - quoted, "the rest is as before");
        assertLe(custodian.totalClaims(address(_hook)), _hook.balanceOf(address(custodian)), "covered");
    }

    /// @dev The other way round: a claim has left the books but not yet the vault, and must not be sold meanwhile.
    function test_SwapInsideAnExecutionIsRefused() external {
        VaultHookToken token = new VaultHookToken(address(entrypoint));
        _listAgainstBase(address(token));
        token.mint(MAKER, 5000e6);
        vm.startPrank(MAKER);
        token.approve(address(custodian), 5000e6);
        custodian.deposit(address(token), 5000e6);
        vm.stopPrank();
        vm.prank(OWNER);
        custodian.setWithdrawDelay(0);
        vm.prank(CLAIM_POSTER);
        custodian.settleWithdraw(MAKER, address(token), 5000e6, 0);
        base.mint(address(token), 1e18);
        vm.prank(address(token));
        base.approve(address(entrypoint), 1e18);
        bytes memory sell = abi.encodeCall(
            IEntrypoint.swap,
            (address(base), address(token), 1e18, 0, address(token), START)
        );
        token.plan(sell);
        vm.prank(MAKER);
        custodian.executeWithdraw(address(token));
        bytes4 locked = ReentrancyGuardTransient.ReentrancyGuardReentrantCall.selector;
        assertEq(keccak256(token.lastError()), keccak256(abi.encodeWithSelector(locked)), "by the custodian's lock");
        assertEq(token.balanceOf(MAKER), 5000e6, "the claim, whole");
        assertEq(base.balanceOf(address(token)), 1e18, "nothing sold");
    }

    /// @dev The attack that this is for, with a token that keeps a part of each transfer: what is missing from the payment is deposited from
    /// inside it. Were both counted, the vault would owe the depositor what the swap has spent already.
    function test_ShortPaymentIsNotMadeUpByADeposit() external {
        HookToken charging = new ChargingHookToken(1);
        _listAgainstBase(address(charging));
        address[] memory spenders = new address[](2);
        (spenders[0], spenders[1]) = (address(custodian), address(entrypoint));
        address[] memory tokens = new address[](1);
        tokens[0] = address(charging);
        Attacker attacker = new Attacker(charging, spenders, tokens);
        charging.mint(address(attacker), 10_000e6);
        attacker.plan(address(custodian), abi.encodeCall(ICustodian.deposit, (address(charging), 100e6)), false);
        bytes memory buy = abi.encodeCall(
            IEntrypoint.swap,
            (address(charging), address(base), 3000e6, 0, address(attacker), START)
        );
        vm.expectRevert(
            abi.encodeWithSelector(IEntrypoint.InsufficientReceived.selector, address(charging), 2970e6, 3000e6)
        );
        attacker.run(address(entrypoint), buy);
        assertEq(charging.balanceOf(address(custodian)), 0, "nothing arrived");
    }

    /// @dev Inside a payment the depth is already taken: a hook sees the market as it will be.
    function test_HookSeesTheDepthTaken() external {
        uint256 before = entrypoint.quote(address(_hook), address(base), 6000e6);
        Probe probe = new Probe(_hook, address(entrypoint), address(base));
        _hook.mint(address(probe), 3000e6);
        probe.buy(3000e6, START);
        assertTrue(probe.seen() != before && probe.seen() != 0, "moved on");
        assertEq(probe.seen(), entrypoint.quote(address(_hook), address(base), 6000e6), "as after the swap");
    }

    /* TOKENS THAT DON'T DO WHAT THEY SAY */

    function test_RevertWhen_TheInputArrivesShort() external {
        FeeOnTransferToken fee = new FeeOnTransferToken(1);
        fee.mint(TAKER, 10_000e6);
        _listAgainstBase(address(fee));
        vm.startPrank(TAKER);
        fee.approve(address(entrypoint), type(uint256).max);
        bytes4 short = IEntrypoint.InsufficientReceived.selector;
        vm.expectRevert(abi.encodeWithSelector(short, address(fee), uint256(2970e6), uint256(3000e6)));
        entrypoint.swap(address(fee), address(base), 3000e6, 0, TAKER, START);
    }

    function test_RevertWhen_TheInputNeverArrives() external {
        LyingToken lying = new LyingToken();
        lying.lie();
        _listAgainstBase(address(lying));
        vm.startPrank(TAKER);
        bytes4 short = IEntrypoint.InsufficientReceived.selector;
        vm.expectRevert(abi.encodeWithSelector(short, address(lying), 0, uint256(3000e6)));
        entrypoint.swap(address(lying), address(base), 3000e6, 0, TAKER, START);
    }

    function test_TokenThatReturnsNothingTrades() external {
        SilentToken silent = new SilentToken();
        silent.mint(TAKER, 10_000e6);
        _listAgainstBase(address(silent));
        vm.startPrank(TAKER);
        silent.approve(address(entrypoint), type(uint256).max);
        uint256 out = entrypoint.swap(address(silent), address(base), 3000e6, 0, TAKER, START);
        uint256 back = entrypoint.swap(address(base), address(silent), out, 0, TAKER, START);
        assertEq(silent.balanceOf(TAKER), 7000e6 + back, "there and back");
    }

    /* HELPERS */

    function _listAgainstBase(address token) private returns (bytes32 id) {
        vm.prank(OWNER);
        id = book.listMarket(address(base), token, 14, 1, 0, MAX_TTL_SEC);
        _post(_fullRecord(id, Curve(1, uint32(START + MAX_TTL_SEC), 0, 0, _ladder(600_002, 15), _ladder(599_998, 15))));
    }

    function _buy(uint256 amountIn) private view returns (bytes memory) {
        return
            abi.encodeCall(IEntrypoint.swap, (address(_hook), address(base), amountIn, 0, address(_attacker), START));
    }

    function _sell(uint256 amountIn) private view returns (bytes memory) {
        return
            abi.encodeCall(IEntrypoint.swap, (address(base), address(_hook), amountIn, 0, address(_attacker), START));
    }

    function _depositCall(uint256 amount) private view returns (bytes memory) {
        return abi.encodeCall(ICustodian.deposit, (address(_hook), amount));
    }

    function _expectDeposit(address maker, uint256 amount) private {
        vm.expectEmit(address(custodian));
        emit ICustodian.Deposited(maker, address(_hook), amount);
    }

    function _expectFailure() private view {
        _expectFailureOf(ReentrancyGuardTransient.ReentrancyGuardReentrantCall.selector);
    }

    function _expectFailureOf(bytes4 selector) private view {
        assertEq(_attacker.failures(), 1, "refused");
        assertEq(keccak256(_attacker.lastError()), keccak256(abi.encodeWithSelector(selector)), "by a lock");
    }
}

/// @notice Buys, and asks for a quote while it pays.
contract Probe is Hooked {
    HookToken private immutable HOOK;
    IEntrypoint private immutable ENTRYPOINT;
    address private immutable BASE;
    uint256 public seen;

    constructor(HookToken hook, address entrypoint, address base_) {
        HOOK = hook;
        ENTRYPOINT = IEntrypoint(entrypoint);
        BASE = base_;
        hook.setHook(true);
        hook.approve(entrypoint, type(uint256).max);
    }

    function buy(uint256 amountIn, uint256 deadline) external {
        ENTRYPOINT.swap(address(HOOK), BASE, amountIn, 0, address(this), deadline);
    }

    function beforeSend(address, uint256) external {
        seen = ENTRYPOINT.quote(address(HOOK), BASE, 6000e6);
    }

    function afterReceive(address, uint256) external {}
}
