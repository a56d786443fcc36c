// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IERC165} from "@openzeppelin/contracts/utils/introspection/IERC165.sol";
import {ICurveBook} from "../../../contracts/interfaces/ICurveBook.sol";
import {IEntrypoint} from "../../../contracts/interfaces/IEntrypoint.sol";
import {IPropAMM} from "../../../contracts/interfaces/IPropAMM.sol";
import {IPropAMMExactOut} from "../../../contracts/interfaces/IPropAMMExactOut.sol";
import {IPropAmmAdapter} from "../../../contracts/interfaces/IPropAmmAdapter.sol";
import {FeeOnTransferToken} from "../support/HostileTokens.sol";
import {IMintableToken} from "../support/Interfaces.sol";
import {Platform} from "../support/Platform.sol";

/// @notice Trading through the adapter is trading directly, to the unit, and leaves nothing behind.
contract PropAmmAdapterTest is Platform {
    address private constant ROUTER = address(0x60073);
    address private constant RECIPIENT = address(0x4EC1);

    function setUp() public override {
        super.setUp();
        base.mint(ROUTER, 10 ** 24);
        quote.mint(ROUTER, 10 ** 24);
        _postDefault();
    }

    function testFuzz_ExactInputIsTheDirectSwap(uint256 amountIn, bool isBuy, bool pushes) external {
        (IMintableToken tokenIn, IMintableToken tokenOut) = _tokens(isBuy);
        amountIn = bound(amountIn, isBuy ? 1e4 : 1e15, isBuy ? 36_000e6 : 12e18);
        uint256 quoted = _quote(isBuy, amountIn);
        assertEq(adapter.quote(address(tokenIn), address(tokenOut), amountIn), quoted, "quote");
        _pay(tokenIn, amountIn, pushes);
        vm.recordLogs();
        vm.prank(ROUTER);
        uint256 out = adapter.swap(address(tokenIn), address(tokenOut), amountIn, quoted, RECIPIENT, START);
        assertEq(out, quoted, "as quoted");
        assertEq(tokenOut.balanceOf(RECIPIENT), quoted, "received");
        assertEq(tokenIn.balanceOf(ROUTER), 10 ** 24 - amountIn, "paid");
        SwapLog memory log = _lastSwap();
        assertEq(log.fee, 0, "no fee");
        assertEq(isBuy ? log.quoteAmount : log.baseAmount, amountIn, "input of the event");
        _assertEmpty();
    }

    function testFuzz_ExactOutputIsTheDirectSwap(uint256 amountOut, uint256 slack, bool isBuy, bool pushes) external {
        (IMintableToken tokenIn, IMintableToken tokenOut) = _tokens(isBuy);
        amountOut = bound(amountOut, isBuy ? 1e12 : 1e4, isBuy ? 12e18 : 36_000e6);
        uint256 quoted = _quoteExactOutput(isBuy, amountOut);
        uint256 most = quoted + bound(slack, 0, 1e6);
        assertEq(adapter.quoteExactOut(address(tokenIn), address(tokenOut), amountOut), quoted, "quote");
        _pay(tokenIn, most, pushes);
        vm.prank(ROUTER);
        uint256 spent = adapter.swapExactOut(
            address(tokenIn),
            address(tokenOut),
            amountOut,
            most,
            RECIPIENT,
            TAKER,
            START
        );
        assertEq(spent, quoted, "as quoted");
        assertEq(tokenOut.balanceOf(RECIPIENT), amountOut, "received");
        assertEq(tokenIn.balanceOf(TAKER), 10 ** 30 + most - quoted, "refund");
        assertEq(tokenIn.balanceOf(ROUTER), 10 ** 24 - most, "paid");
        _assertEmpty();
    }

    /// @dev A rate of the adapter's is on top of what is bought, in the quote as in the swap.
    function testFuzz_QuotesIncludeTheAdaptersOwnFee(
        uint256 amountOut,
        uint256 rate,
        bool isBuy,
        bool charges
    ) external {
        rate = bound(rate, 0, 10_000);
        amountOut = bound(amountOut, isBuy ? 1e12 : 1e4, isBuy ? 12e18 : 36_000e6);
        vm.startPrank(OWNER);
        entrypoint.setTakerFee(address(adapter), rate);
        book.setTakerFees(market, charges);
        vm.stopPrank();
        (IMintableToken tokenIn, IMintableToken tokenOut) = _tokens(isBuy);
        uint256 quoted = adapter.quoteExactOut(address(tokenIn), address(tokenOut), amountOut);
        _pay(tokenIn, quoted, true);
        vm.prank(ROUTER);
        uint256 spent = adapter.swapExactOut(
            address(tokenIn),
            address(tokenOut),
            amountOut,
            quoted,
            RECIPIENT,
            TAKER,
            START
        );
        assertEq(spent, quoted, "as quoted");
        assertEq(tokenOut.balanceOf(RECIPIENT), amountOut, "received");
    }

    function test_EmitsTheStandardEvent() external {
        uint256 quoted = _quote(false, 1e18);
        _pay(base, 1e18, true);
        vm.prank(ROUTER);
        vm.expectEmit(address(adapter));
        emit IPropAMM.Swapped(ROUTER, address(base), address(quote), 1e18, quoted, RECIPIENT);
        adapter.swap(address(base), address(quote), 1e18, 0, RECIPIENT, START);
    }

    function test_TakerOfTheTradeIsTheAdapter() external {
        vm.prank(OWNER);
        entrypoint.setTakerFee(ROUTER, 10_000);
        uint256 quoted = _quote(false, 1e18);
        _pay(base, 1e18, true);
        vm.prank(ROUTER);
        uint256 out = adapter.swap(address(base), address(quote), 1e18, 0, RECIPIENT, START);
        assertEq(out, quoted, "the router's own rate plays no role");
    }

    function test_SurplusGoesBackToTheCaller() external {
        _pay(base, 3e18, true);
        vm.prank(ROUTER);
        adapter.swap(address(base), address(quote), 1e18, 0, RECIPIENT, START);
        assertEq(base.balanceOf(ROUTER), 10 ** 24 - 1e18, "only what was sold");
        _assertEmpty();
    }

    function test_Discovery() external view {
        IPropAMM.TokenPair[] memory pairs = adapter.getPairs();
        assertEq(pairs.length, 1, "pairs");
        assertTrue(pairs[0].token0 < pairs[0].token1, "ordered");
        assertTrue(adapter.isActive(address(base), address(quote)), "sells");
        assertTrue(adapter.isActive(address(quote), address(base)), "buys");
        assertTrue(!adapter.isActive(address(base), STRANGER), "unknown");
        assertTrue(adapter.supportsInterface(type(IERC165).interfaceId), "ERC-165");
        assertTrue(adapter.supportsInterface(type(IPropAMM).interfaceId), "exact input");
        assertTrue(adapter.supportsInterface(type(IPropAMMExactOut).interfaceId), "exact output");
        assertTrue(!adapter.supportsInterface(0xffffffff), "nothing else");
        assertEq(adapter.entrypoint(), address(entrypoint), "entrypoint");
        assertTrue(adapter.lens() != address(0), "lens");
    }

    /// @dev Routers know these by number.
    function test_InterfaceIdsAreTheStandardOnes() external pure {
        bytes4 exactIn =
            bytes4(keccak256("isActive(address,address)")) ^
                bytes4(keccak256("getPairs()")) ^
                bytes4(keccak256("quote(address,address,uint256)")) ^
                bytes4(keccak256("swap(address,address,uint256,uint256,address,uint256)"));
        assertEq(bytes32(type(IPropAMM).interfaceId), bytes32(exactIn), "exact input");
        bytes4 exactOut =
            bytes4(keccak256("quoteExactOut(address,address,uint256)")) ^
                bytes4(keccak256("swapExactOut(address,address,uint256,uint256,address,address,uint256)"));
        assertEq(bytes32(type(IPropAMMExactOut).interfaceId), bytes32(exactOut), "exact output");
    }

    function test_RevertWhen_NotTradable() external {
        vm.expectRevert(
            abi.encodeWithSelector(IPropAmmAdapter.NotTradable.selector, address(base), address(quote), 1e30)
        );
        adapter.quote(address(base), address(quote), 1e30);
        vm.warp(START + MAX_TTL_SEC);
        vm.expectRevert(
            abi.encodeWithSelector(IPropAmmAdapter.NotTradable.selector, address(base), address(quote), 1e6)
        );
        adapter.quoteExactOut(address(base), address(quote), 1e6);
        _pay(base, 1e18, true);
        vm.prank(ROUTER);
        vm.expectRevert(abi.encodeWithSelector(ICurveBook.CurveExpired.selector, market, START + MAX_TTL_SEC));
        adapter.swap(address(base), address(quote), 1e18, 0, RECIPIENT, block.timestamp);
    }

    function test_RevertWhen_LimitOrDeadlineIsMissed() external {
        uint256 quoted = _quote(false, 1e18);
        _pay(base, 1e18, true);
        vm.prank(ROUTER);
        vm.expectRevert(abi.encodeWithSelector(IEntrypoint.InsufficientOutput.selector, quoted, quoted + 1));
        adapter.swap(address(base), address(quote), 1e18, quoted + 1, RECIPIENT, START);
        vm.prank(ROUTER);
        vm.expectRevert(abi.encodeWithSelector(IEntrypoint.DeadlinePassed.selector, START - 1));
        adapter.swap(address(base), address(quote), 1e18, 0, RECIPIENT, START - 1);
        uint256 needed = _quoteExactOutput(false, 1e9);
        vm.prank(ROUTER);
        vm.expectRevert(abi.encodeWithSelector(IEntrypoint.ExcessiveInput.selector, needed, needed - 1));
        adapter.swapExactOut(address(base), address(quote), 1e9, needed - 1, RECIPIENT, ROUTER, START);
    }

    function test_RevertWhen_SomethingWouldStay() external {
        _pay(base, 2e18, true);
        address[] memory bad = _forbiddenRecipients();
        for (uint256 i = 0; i < bad.length; ++i) {
            bytes memory refusal = abi.encodeWithSelector(IPropAmmAdapter.ForbiddenRecipient.selector, bad[i]);
            vm.expectRevert(refusal);
            adapter.swap(address(base), address(quote), 1e18, 0, bad[i], START);
            vm.expectRevert(refusal);
            adapter.swapExactOut(address(base), address(quote), 1e6, 2e18, bad[i], ROUTER, START);
            vm.expectRevert(refusal);
            adapter.swapExactOut(address(base), address(quote), 1e6, 2e18, RECIPIENT, bad[i], START);
        }
    }

    function test_RevertWhen_TheOutputTokenKeepsAPart() external {
        FeeOnTransferToken token = new FeeOnTransferToken(1);
        vm.prank(OWNER);
        book.listMarket(address(base), address(token), 14, 1, 0, MAX_TTL_SEC);
        token.mint(address(custodian), 10 ** 24);
        Curve memory c = Curve({
            seq: 1,
            deadline: uint32(START + MAX_TTL_SEC),
            snapAsk: 0,
            snapBid: 0,
            asks: new uint256[](0),
            bids: _ladder(600_000, 15)
        });
        _post(_fullRecord(_idOf(address(base), address(token)), c));
        uint256 quoted = adapter.quote(address(base), address(token), 1e18);
        uint256 arrives = quoted - quoted / 100;
        _pay(base, 1e18, true);
        vm.prank(ROUTER);
        vm.expectRevert(abi.encodeWithSelector(IPropAmmAdapter.InsufficientOutput.selector, arrives, quoted));
        adapter.swap(address(base), address(token), 1e18, quoted, RECIPIENT, START);
        vm.prank(ROUTER);
        assertEq(adapter.swap(address(base), address(token), 1e18, arrives, RECIPIENT, START), arrives, "what arrived");
    }

    /* INTERNAL */

    function _idOf(address a, address b) private pure returns (bytes32) {
        return a < b ? keccak256(abi.encodePacked(a, b)) : keccak256(abi.encodePacked(b, a));
    }

    function _tokens(bool isBuy) private view returns (IMintableToken tokenIn, IMintableToken tokenOut) {
        return isBuy ? (quote, base) : (base, quote);
    }

    function _pay(IMintableToken token, uint256 amount, bool pushes) private {
        vm.prank(ROUTER);
        if (pushes) token.transfer(address(adapter), amount);
        else token.approve(address(adapter), amount);
    }

    function _assertEmpty() private view {
        assertEq(base.balanceOf(address(adapter)) + quote.balanceOf(address(adapter)), 0, "nothing left behind");
    }
}
