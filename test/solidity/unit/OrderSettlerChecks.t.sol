// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {Ownable} from "@openzeppelin/contracts/access/Ownable.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/IERC20Permit.sol";
import {ICurveBook} from "../../../contracts/interfaces/ICurveBook.sol";
import {IEntrypoint} from "../../../contracts/interfaces/IEntrypoint.sol";
import {IOrderSettler} from "../../../contracts/interfaces/IOrderSettler.sol";
import {BurningToken} from "../support/HostileTokens.sol";
import {SettlerOrders} from "../support/SettlerOrders.sol";

/// @notice Answers in several ways.
contract Oracle {
    uint256 private _asked;

    /// @dev Four words; the last one is all bits.
    function words() external pure returns (uint256, uint256, uint256, uint256) {
        return (10, 20, 0, type(uint256).max);
    }

    function echo(uint256 word) external pure returns (uint256) {
        return word;
    }

    /// @dev 31 bytes.
    function part() external pure {
        assembly ("memory-safe") {
            return(0x00, 0x1f)
        }
    }

    function refusal() external pure {
        revert("never");
    }

    function write() external returns (uint256) {
        return ++_asked;
    }

    /// @dev As long an answer as the gas allows.
    function bomb() external pure {
        assembly ("memory-safe") {
            return(0x00, 0x2000)
        }
    }

    function burn() external pure returns (uint256) {
        // Runs out of gas.
        while (true) {}
        return 1;
    }
}

/// @notice Signed orders that are filled only if all is as it was.
contract OrderSettlerChecksTest is SettlerOrders {
    bytes32 private constant PERMIT_TYPEHASH = keccak256(
        "Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)"
    );
    /// @dev The most gas that a check gets.
    uint256 private constant CHECK_GAS = 100_000;

    Oracle private _oracle;

    function setUp() public override {
        super.setUp();
        _oracle = new Oracle();
    }

    /* WHAT HOLDS */

    function test_SellsAsWithoutChecks() external {
        IOrderSettler.Order memory order = _signed(false, 1e18, 2900e6);
        uint256 expected = _quote(false, 0.99e18);
        _expectFilled(order, 1e18, expected, 0.01e18, true);
        (uint256 amountIn, uint256 amountOut) = _fillBy(
            _previewed(false, 0.99e18, expected),
            1e18,
            "",
            abi.encodeCall(IOrderSettler.fillOnCurve, (0.01e18, order))
        );
        assertEq(amountIn, 1e18, "in");
        assertEq(amountOut, expected, "out");
        _expectChanges(false, 1e18, 1e18, expected, expected);
    }

    function test_BuysAsWithoutChecks() external {
        IOrderSettler.Order memory order = _signed(true, 3050e6, 1e18);
        uint256 cost = _quoteExactOutput(true, 1e18);
        (uint256 amountIn, uint256 amountOut) = _fillBy(
            _one(_check(address(_oracle), 1, 20, 20, abi.encodeCall(Oracle.words, ()))),
            cost + 1e6,
            "",
            abi.encodeCall(IOrderSettler.fillOnCurveExactOut, (1e6, order))
        );
        assertEq(amountIn, cost + 1e6, "in");
        assertEq(amountOut, 1e18, "out");
        _expectChanges(true, cost + 1e6, cost + 1e6, 1e18, 1e18);
    }

    function test_RoutesAsWithoutChecks() external {
        IOrderSettler.Order memory order = _signed(false, 1e18, 2990e6);
        IOrderSettler.Route memory route = _route(1e18, 0.02e18);
        route = _via(route, address(base), 0.98e18, 0.98e18, address(quote), 2995e6);
        bytes memory fill = abi.encodeCall(IOrderSettler.fillRoute, (order, route));
        (uint256 amountIn, uint256 amountOut) = _fillBy(_none(), 1e18, "", fill);
        assertEq(amountIn, 1e18, "in");
        assertEq(amountOut, 2995e6, "out");
        _expectChanges(false, 1e18, 0.02e18, 2995e6, 0);
        _expectNothingLeft();
    }

    function test_SellsByAPermit() external {
        _revoke();
        IOrderSettler.Order memory order = _signed(false, 1e18, 1);
        bytes memory fill = abi.encodeCall(IOrderSettler.fillOnCurve, (0, order));
        (uint256 amountIn, ) = _fillBy(_none(), 1e18, _permit(1e18), fill);
        assertEq(amountIn, 1e18, "in");
        assertEq(base.allowance(signer, address(permit2)), 0, "used up");
    }

    /// @dev Whoever saw the permit on its way may submit it first.
    function test_AFrontRunPermitDoesNoHarm() external {
        _revoke();
        bytes memory permit = _permit(1e18);
        vm.prank(STRANGER);
        (bool done, ) = address(base).call(permit);
        assertTrue(done, "submitted by somebody else");
        bytes memory fill = abi.encodeCall(IOrderSettler.fillOnCurve, (0, _signed(false, 1e18, 1)));
        (uint256 amountIn, ) = _fillBy(_none(), 1e18, permit, fill);
        assertEq(amountIn, 1e18, "in");
    }

    function testFuzz_AWordWithinItsBoundsIsNoObstacle(uint256 word, uint256 minimum, uint256 maximum) external {
        // Near each other as often as not.
        word = bound(word, 1, type(uint256).max - 1);
        if (word & 1 == 0) (minimum, maximum) = (word - 1 + (minimum % 3), word - 1 + (maximum % 3));
        IOrderSettler.Check[] memory checks = _one(
            _check(address(_oracle), 0, minimum, maximum, abi.encodeCall(Oracle.echo, (word)))
        );
        bool holds = word >= minimum && (maximum < minimum || word <= maximum);
        bytes memory fill = _sale();
        vm.prank(EXECUTOR);
        if (!holds) vm.expectRevert(abi.encodeWithSelector(IOrderSettler.CheckFailed.selector, 0, word));
        settler.fillChecked(checks, 1e18, "", fill);
        assertEq(base.balanceOf(signer), 10 ** 30 - (holds ? 1e18 : 0), "filled or not");
    }

    function testFuzz_FundsAreNeededToTheUnit(uint256 held, uint256 allowed, uint256 amount) external {
        held = bound(held, 1e18, 3e18);
        allowed = bound(allowed, 1e18, 3e18);
        amount = bound(amount, 0, 3e18);
        uint256 gone = 10 ** 30 - held;
        vm.startPrank(signer);
        base.approve(address(permit2), allowed);
        base.transfer(STRANGER, gone);
        vm.stopPrank();
        uint256 available = held < amount ? held : allowed;
        bytes memory fill = _sale();
        vm.prank(EXECUTOR);
        if (available < amount) {
            vm.expectRevert(
                abi.encodeWithSelector(IOrderSettler.InsufficientFunds.selector, address(base), available, amount)
            );
        }
        settler.fillChecked(_none(), amount, "", fill);
        assertEq(base.balanceOf(signer), held - (available < amount ? 0 : 1e18), "filled or not");
    }

    /* WHAT DOES NOT */

    function test_RevertWhen_AWordIsOutOfItsBounds() external {
        bytes memory words = abi.encodeCall(Oracle.words, ());
        _expectUnfilled(_check(address(_oracle), 0, 11, 12, words), 10);
        _expectUnfilled(_check(address(_oracle), 1, 18, 19, words), 20);
        // Without a maximum.
        _expectUnfilled(_check(address(_oracle), 1, 21, 0, words), 20);
        // Zero alone.
        _expectUnfilled(_check(address(_oracle), 3, 0, 0, words), type(uint256).max);
    }

    function test_RevertWhen_AnAnswerHasNoSuchWord() external {
        bytes memory words = abi.encodeCall(Oracle.words, ());
        uint256 all = type(uint256).max;
        _expectUnfilled(_check(address(_oracle), 4, 0, all, words), 0);
        // Where its offset wraps round to the answer's beginning.
        _expectUnfilled(_check(address(_oracle), 1 << 251, 0, all, words), 0);
        _expectUnfilled(_check(address(_oracle), all, 0, all, words), 0);
        _expectUnfilled(_check(address(_oracle), 0, 0, all, abi.encodeCall(Oracle.part, ())), 0);
        _expectUnfilled(_check(STRANGER, 0, 0, all, words), 0);
        _expectUnfilled(_check(address(_oracle), 0, 0, all, ""), 0);
    }

    function test_RevertWhen_AViewFails() external {
        uint256 all = type(uint256).max;
        _expectUnfilled(_check(address(_oracle), 0, 0, all, abi.encodeCall(Oracle.refusal, ())), 0);
        // A check can't change anything, even if it would hold.
        _expectUnfilled(_check(address(_oracle), 0, 0, all, abi.encodeCall(Oracle.write, ())), 0);
        _expectUnfilled(_check(address(_oracle), 0, 0, all, abi.encodeCall(Oracle.burn, ())), 0);
    }

    function test_TheFirstThatFailsIsNamed() external {
        IOrderSettler.Check[] memory checks = new IOrderSettler.Check[](4);
        for (uint256 i = 0; i < 4; ++i) {
            checks[i] = _check(address(_oracle), 0, i < 2 ? 7 : 8, 9, abi.encodeCall(Oracle.echo, (7)));
        }
        bytes memory fill = _sale();
        vm.prank(EXECUTOR);
        vm.expectRevert(abi.encodeWithSelector(IOrderSettler.CheckFailed.selector, 2, 7));
        settler.fillChecked(checks, 1e18, "", fill);
    }

    /// @dev What a check can burn is bounded, and so is what a long answer costs.
    function test_ACheckTakesABoundedAmountOfGas() external {
        uint256 all = type(uint256).max;
        uint256 honest = _gasOfRefusal(_check(address(_oracle), 0, 11, 11, abi.encodeCall(Oracle.words, ())));
        uint256 burnt = _gasOfRefusal(_check(address(_oracle), 0, 0, all, abi.encodeCall(Oracle.burn, ())));
        // The test's own memory, which grows, takes some gas between the readings.
        assertLe(burnt, honest + CHECK_GAS + 100, "burnt");
        assertLe(honest + CHECK_GAS - 5000, burnt, "all of it");
        uint256 bombed = _gasOfRefusal(_check(address(_oracle), 0, 1, all, abi.encodeCall(Oracle.bomb, ())));
        assertLe(bombed, honest + 3000, "not copied");
    }

    function test_RevertWhen_TheOwnerHasCode() external {
        bytes memory fill = _sale();
        vm.etch(signer, hex"00");
        vm.prank(EXECUTOR);
        vm.expectRevert(abi.encodeWithSelector(IOrderSettler.OwnerHasCode.selector, signer));
        settler.fillChecked(_none(), 1e18, "", fill);
    }

    function test_RevertWhen_ItsLastSecondIsOver() external {
        IOrderSettler.Order memory order = _signed(false, 1e18, 1);
        bytes memory fill = abi.encodeCall(IOrderSettler.fillOnCurve, (0, order));
        vm.warp(order.deadline + 1);
        vm.prank(EXECUTOR);
        vm.expectRevert(abi.encodeWithSelector(IOrderSettler.SignatureExpired.selector, order.deadline));
        settler.fillChecked(_none(), 1e18, "", fill);
        vm.warp(order.deadline);
        _fillBy(_none(), 1e18, "", fill);
    }

    /// @dev Others can spoil the first check for nothing, and the owner what is asked then; the rest may be many, and is asked last.
    function test_TheOwnerIsAskedAboutBehindTheFirstCheck() external {
        bytes memory words = abi.encodeCall(Oracle.words, ());
        bytes memory fill = _sale();
        vm.prank(signer);
        base.transfer(STRANGER, 10 ** 30);
        IOrderSettler.Check[] memory checks = new IOrderSettler.Check[](2);
        checks[0] = _check(address(_oracle), 0, 10, 10, words);
        checks[1] = _check(address(_oracle), 0, 11, 11, words);
        vm.prank(EXECUTOR);
        vm.expectRevert(abi.encodeWithSelector(IOrderSettler.InsufficientFunds.selector, address(base), 0, 1e18));
        settler.fillChecked(checks, 1e18, "", fill);
        checks[0] = checks[1];
        vm.prank(EXECUTOR);
        vm.expectRevert(abi.encodeWithSelector(IOrderSettler.CheckFailed.selector, 0, 10));
        settler.fillChecked(checks, 1e18, "", fill);
    }

    function test_RevertWhen_TheNonceIsUsed() external {
        IOrderSettler.Order memory order = _signed(false, 1e18, 1);
        IOrderSettler.Order memory next = _signed(false, 1e18, 1);
        bytes memory fill = abi.encodeCall(IOrderSettler.fillOnCurve, (0, order));
        _fillBy(_none(), 1e18, "", fill);
        vm.expectRevert(abi.encodeWithSelector(IOrderSettler.NonceUsed.selector, signer, order.nonce));
        vm.prank(EXECUTOR);
        settler.fillChecked(_none(), 1e18, "", fill);
        fill = abi.encodeCall(IOrderSettler.fillRoute, (order, _route(1e18, 0)));
        vm.expectRevert(abi.encodeWithSelector(IOrderSettler.NonceUsed.selector, signer, order.nonce));
        vm.prank(EXECUTOR);
        settler.fillChecked(_none(), 1e18, "", fill);
        // Its neighbours in the word are not.
        _fillBy(_none(), 1e18, "", abi.encodeCall(IOrderSettler.fillOnCurve, (0, next)));
    }

    function testFuzz_ExactlyTheNoncesThatPermit2RefusesAreUsed(uint256 used, uint256 nonce) external {
        // In the same word as often as not.
        if (used & 1 == 0) nonce = (used & ~uint256(0xff)) | (nonce & 0xff);
        IOrderSettler.Order memory order = _order(address(base), address(quote), 1e18, 1);
        order.nonce = used;
        _fillBy(_none(), 1e18, "", abi.encodeCall(IOrderSettler.fillOnCurve, (0, _sign(order))));
        order.nonce = nonce;
        bytes memory fill = abi.encodeCall(IOrderSettler.fillOnCurve, (0, _sign(order)));
        vm.prank(EXECUTOR);
        if (nonce == used) {
            vm.expectRevert(abi.encodeWithSelector(IOrderSettler.NonceUsed.selector, signer, nonce));
        }
        settler.fillChecked(_none(), 1e18, "", fill);
        assertEq(base.balanceOf(signer), 10 ** 30 - (nonce == used ? 1e18 : 2e18), "filled or not");
    }

    function test_RevertWhen_ThePermitIsForLess() external {
        _revoke();
        bytes memory fill = _sale();
        bytes memory permit = _permit(1e18 - 1);
        vm.expectRevert(
            abi.encodeWithSelector(IOrderSettler.InsufficientFunds.selector, address(base), 1e18 - 1, 1e18)
        );
        vm.prank(EXECUTOR);
        settler.fillChecked(_none(), 1e18, permit, fill);
        assertEq(base.allowance(signer, address(permit2)), 0, "nothing of it stays");
    }

    /// @dev The sell token's answers are bounded, too, and one that is none counts as nothing.
    function test_RevertWhen_TheTokenAnswersNothing() external {
        bytes memory fill = _sale();
        bytes memory none = abi.encodeWithSelector(IOrderSettler.InsufficientFunds.selector, address(base), 0, 1e18);
        vm.etch(address(base), address(new BurningToken()).code);
        vm.prank(EXECUTOR);
        uint256 taken = gasleft();
        (bool done, bytes memory reason) = address(settler).call(
            abi.encodeCall(IOrderSettler.fillChecked, (_none(), 1e18, "", fill))
        );
        taken -= gasleft();
        assertTrue(!done && keccak256(reason) == keccak256(none), "nothing");
        assertLe(taken, CHECK_GAS + 50_000, "burnt");
        vm.etch(address(base), hex"00");
        vm.prank(EXECUTOR);
        vm.expectRevert(none);
        settler.fillChecked(_none(), 1e18, "", fill);
    }

    function test_RevertWhen_TheFillDoes() external {
        uint256 quoted = _quote(false, 1e18);
        bytes memory fill = abi.encodeCall(IOrderSettler.fillOnCurve, (0, _signed(false, 1e18, quoted + 1)));
        vm.prank(EXECUTOR);
        vm.expectRevert(abi.encodeWithSelector(IEntrypoint.InsufficientOutput.selector, quoted, quoted + 1));
        settler.fillChecked(_none(), 1e18, "", fill);
        // A preview finds it out before anything is moved.
        vm.prank(EXECUTOR);
        vm.expectRevert(abi.encodeWithSelector(IOrderSettler.CheckFailed.selector, 0, quoted));
        settler.fillChecked(_previewed(false, 1e18, quoted + 1), 1e18, "", fill);
    }

    /// @dev Each of what spoils an order is found before its permit is submitted, for little gas.
    function test_NothingIsSubmittedForAnOrderThatIsSpoilt() external {
        _revoke();
        // It outlives the curve.
        IOrderSettler.Order memory order = _order(address(base), address(quote), 1e18, 1);
        order.deadline += MAX_TTL_SEC;
        bytes memory fill = abi.encodeCall(IOrderSettler.fillOnCurve, (0, _sign(order)));
        bytes memory permit = _permit(1e18);
        bytes memory data = abi.encodeCall(IOrderSettler.fillChecked, (_previewed(false, 1e18, 1), 1e18, permit, fill));
        for (uint256 how = 0; how < 4; ++how) {
            uint256 state = vm.snapshotState();
            if (how == 0) vm.warp(block.timestamp + MAX_TTL_SEC);
            if (how == 1) vm.etch(signer, hex"00");
            if (how == 2) {
                IOrderSettler.Order memory other = _order(address(quote), address(base), 3100e6, 1);
                other.nonce = order.nonce;
                _fill(_sign(other), false, 0);
            }
            if (how == 3) {
                vm.prank(signer);
                base.transfer(STRANGER, 10 ** 30);
            }
            vm.prank(EXECUTOR);
            uint256 taken = gasleft();
            (bool done, bytes memory reason) = address(settler).call(data);
            taken -= gasleft();
            bytes4[4] memory expected = [
                IOrderSettler.CheckFailed.selector,
                IOrderSettler.OwnerHasCode.selector,
                IOrderSettler.NonceUsed.selector,
                IOrderSettler.InsufficientFunds.selector
            ];
            assertTrue(!done && bytes4(reason) == expected[how], "refused for that reason");
            // What the platform reckons with for a checked order over one place, the transaction and its data included.
            assertLe(taken, 75_000, "early");
            assertTrue(vm.revertToState(state), "reverted to");
        }
        vm.prank(EXECUTOR);
        (bool filled, ) = address(settler).call(data);
        assertTrue(filled, "filled otherwise");
    }

    /* WHO MAY */

    function test_RevertWhen_TheCallerIsNoExecutor() external {
        bytes memory fill = abi.encodeCall(IOrderSettler.witnessTypeString, ());
        vm.expectRevert(abi.encodeWithSelector(IOrderSettler.NotExecutor.selector, STRANGER));
        vm.prank(STRANGER);
        settler.fillChecked(_none(), 0, "", fill);
    }

    /// @dev An executor may do nothing by it that it may not do without, whatever the call seems to name as its order.
    function testFuzz_AnExecutorActsAsNobodyElse(uint256 what, bytes memory tail) external {
        bytes[4] memory acts = [
            abi.encodeCall(IOrderSettler.setExecutor, (STRANGER, true)),
            abi.encodeCall(IOrderSettler.setTarget, (STRANGER, true)),
            abi.encodeCall(Ownable.transferOwnership, (STRANGER)),
            abi.encodeCall(IOrderSettler.deliver, (_delivery(_signed(false, 1e18, 0), 1e18)))
        ];
        what = bound(what, 0, 3);
        vm.prank(EXECUTOR);
        (bool done, ) = address(settler).call(
            abi.encodeCall(IOrderSettler.fillChecked, (_none(), 0, "", bytes.concat(acts[what], tail)))
        );
        assertTrue(!done, "refused");
        assertTrue(!settler.isExecutor(STRANGER), "as it was");
    }

    function test_RevertWhen_ItIsNoPermitForPermit2() external {
        bytes memory fill = _sale();
        bytes memory approval = abi.encodeCall(IERC20.approve, (address(permit2), 1e18));
        vm.expectRevert(abi.encodeWithSelector(IOrderSettler.ForbiddenPermit.selector, address(base)));
        vm.prank(EXECUTOR);
        settler.fillChecked(_none(), 1e18, approval, fill);
    }

    function _fillBy(
        IOrderSettler.Check[] memory checks,
        uint256 amount,
        bytes memory permit,
        bytes memory fill
    ) private returns (uint256, uint256) {
        vm.prank(EXECUTOR);
        return settler.fillChecked(checks, amount, permit, fill);
    }

    /// @dev Sells one base for whatever it brings.
    function _sale() private returns (bytes memory) {
        return abi.encodeCall(IOrderSettler.fillOnCurve, (0, _signed(false, 1e18, 1)));
    }

    function _expectUnfilled(IOrderSettler.Check memory check, uint256 word) private {
        bytes memory fill = _sale();
        vm.prank(EXECUTOR);
        vm.expectRevert(abi.encodeWithSelector(IOrderSettler.CheckFailed.selector, 0, word));
        settler.fillChecked(_one(check), 1e18, "", fill);
    }

    function _gasOfRefusal(IOrderSettler.Check memory check) private returns (uint256 taken) {
        bytes memory data = abi.encodeCall(IOrderSettler.fillChecked, (_one(check), 1e18, "", _sale()));
        vm.prank(EXECUTOR);
        taken = gasleft();
        (bool done, ) = address(settler).call(data);
        taken -= gasleft();
        assertTrue(!done, "refused");
    }

    function _check(
        address target,
        uint256 word,
        uint256 minimum,
        uint256 maximum,
        bytes memory data
    ) private pure returns (IOrderSettler.Check memory) {
        return IOrderSettler.Check(target, word, minimum, maximum, data);
    }

    /// @dev Our own curve brings that at least.
    function _previewed(
        bool isBuy,
        uint256 amountIn,
        uint256 least
    ) private view returns (IOrderSettler.Check[] memory) {
        (address tokenIn, address tokenOut) = _pair(isBuy);
        bytes memory data = abi.encodeCall(ICurveBook.preview, (tokenIn, tokenOut, amountIn, false));
        return _one(_check(address(book), 1, least, 0, data));
    }

    function _one(IOrderSettler.Check memory check) private pure returns (IOrderSettler.Check[] memory checks) {
        checks = new IOrderSettler.Check[](1);
        checks[0] = check;
    }

    function _none() private pure returns (IOrderSettler.Check[] memory) {
        return new IOrderSettler.Check[](0);
    }

    function _revoke() private {
        vm.prank(signer);
        base.approve(address(permit2), 0);
    }

    function _permit(uint256 value) private view returns (bytes memory) {
        IERC20Permit token = IERC20Permit(address(base));
        bytes32 structHash = keccak256(
            abi.encode(PERMIT_TYPEHASH, signer, address(permit2), value, token.nonces(signer), START)
        );
        bytes32 digest = keccak256(abi.encodePacked(hex"1901", token.DOMAIN_SEPARATOR(), structHash));
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(SIGNER_KEY, digest);
        return abi.encodeCall(IERC20Permit.permit, (signer, address(permit2), value, START, v, r, s));
    }
}
